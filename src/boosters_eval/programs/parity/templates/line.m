% A straight line through points. One JSON request per line; an answer is a line that begins with the mark.
1;
function answer(s), printf("@@parity %s\n", jsonencode(s)); fflush(stdout); end
while true
  try, text = input("", "s"); catch, break, end
  if isempty(text), break, end
  q = jsondecode(text);
  switch q.op
    case "versions"
      answer(struct("versions", struct("mine", "1", "octave", version())));
    case "load"
      t = tic; x = csvread(q.x); y = csvread(q.y); answer(struct("elapsed_s", toc(t)));
    case "prepare"
      answer(struct("elapsed_s", 0));
    case "fit"
      t = tic; slope = cov(x, y)(end, 1) / var(x); intercept = mean(y) - slope * mean(x); answer(struct("elapsed_s", toc(t)));
    case "predict"
      t = tic; p = intercept + slope * x; seconds = toc(t);
      f = fopen(q.out, "wb"); fwrite(f, p, "double", 0, "ieee-le"); fclose(f);
      answer(struct("elapsed_s", seconds, "rows", numel(p), "columns", 1));
  end
end
