/* A straight line through points. Replace it by your library. */
void fit_line(const double *x, const double *y, long n, double *line) {
    double mx = 0, my = 0, sxy = 0, sxx = 0;
    for (long i = 0; i < n; i++) { mx += x[i] / n; my += y[i] / n; }
    for (long i = 0; i < n; i++) { sxy += (x[i] - mx) * (y[i] - my); sxx += (x[i] - mx) * (x[i] - mx); }
    line[1] = sxy / sxx;
    line[0] = my - line[1] * mx;
}

void predict_line(const double *x, const double *line, long n, double *out) {
    for (long i = 0; i < n; i++) out[i] = line[0] + line[1] * x[i];
}
