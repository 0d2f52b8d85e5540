% Partial least squares with Octave's plsregress (SIMPLS). One JSON request per line; answers begin with the mark.
1;
function answer(s)
  printf("@@parity %s\n", jsonencode(s)); fflush(stdout);
end
pkg load statistics
while true
  try
    line = input("", "s");
  catch
    break
  end
  if isempty(line), break, end
  q = jsondecode(line);
  switch q.op
    case "versions"
      d = pkg("describe", "statistics"){1};
      v = struct("octave_statistics", d.version, "octave", version(), "BLAS", version("-blas"));
      answer(struct("versions", v));
    case "load"
      if exist("maxNumCompThreads"), maxNumCompThreads(q.threads); end
      t0 = tic; x = csvread(q.x); y = csvread(q.y); s = toc(t0);
      answer(struct("elapsed_s", s));
    case "prepare"
      t0 = tic; mx = mean(x); my = mean(y); s = toc(t0);
      answer(struct("elapsed_s", s));
    case "fit"
      t0 = tic; [xl, yl, xs, ys, b, fit] = plsregress(x, y, q.n_components); s = toc(t0);
      answer(struct("elapsed_s", s));
    case "predict"
      t0 = tic; p = (x - mx) * b + my; s = toc(t0);
      f = fopen(q.out, "wb"); fwrite(f, p', "double", 0, "ieee-le"); fclose(f);
      answer(struct("elapsed_s", s, "rows", rows(p), "columns", columns(p)));
  end
end
