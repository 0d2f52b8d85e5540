# A straight line through points. One JSON request per line; an answer is a line that begins with the mark.
suppressPackageStartupMessages(library(jsonlite))
answer <- function(...) { cat("@@parity ", toJSON(list(...), auto_unbox = TRUE, digits = NA), "\n", sep = ""); flush(stdout()) }
timed <- function(expr) { start <- Sys.time(); force(expr); as.numeric(Sys.time()) - as.numeric(start) }
input <- file("stdin", "r")
while (length(line <- readLines(input, n = 1)) > 0) {
  q <- fromJSON(line)
  if (q$op == "versions") {
    answer(versions = list(mine = "1", R = as.character(getRversion())))
  } else if (q$op == "load") {
    answer(elapsed_s = timed({ x <- scan(q$x, quiet = TRUE); y <- scan(q$y, quiet = TRUE) }))
  } else if (q$op == "prepare") {
    answer(elapsed_s = 0)
  } else if (q$op == "fit") {
    answer(elapsed_s = timed({ slope <- cov(x, y) / var(x); intercept <- mean(y) - slope * mean(x) }))
  } else if (q$op == "predict") {
    seconds <- timed(p <- intercept + slope * x)
    out <- file(q$out, "wb"); writeBin(as.double(p), out, endian = "little"); close(out)
    answer(elapsed_s = seconds, rows = length(p), columns = 1)
  }
}
