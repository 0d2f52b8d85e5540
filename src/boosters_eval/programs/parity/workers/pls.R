# Partial least squares with R's package pls. One JSON request per line; answers are lines that begin with the mark.
suppressPackageStartupMessages({library(jsonlite); library(pls)})
mark <- "@@parity "
answer <- function(...) { cat(mark, toJSON(list(...), auto_unbox = TRUE, digits = NA), "\n", sep = ""); flush(stdout()) }
elapsed <- function(expr) { gc(); start <- Sys.time(); value <- force(expr); list(s = as.numeric(Sys.time()) - as.numeric(start), value = value) }
input <- file("stdin", "r")
state <- new.env()
while (length(line <- readLines(input, n = 1)) > 0) {
  q <- fromJSON(line)
  if (q$op == "versions") {
    answer(versions = list(`R pls` = as.character(packageVersion("pls")), R = as.character(getRversion()), BLAS = basename(extSoftVersion()[["BLAS"]])))
  } else if (q$op == "load") {
    t <- elapsed({
      state$x <- as.matrix(read.csv(q$x, header = FALSE))
      state$y <- as.matrix(read.csv(q$y, header = FALSE))
      dimnames(state$x) <- NULL; dimnames(state$y) <- NULL
    })
    answer(elapsed_s = t$s)
  } else if (q$op == "prepare") {
    t <- elapsed({ state$data <- list(y = state$y, X = state$x) })
    answer(elapsed_s = t$s)
  } else if (q$op == "fit") {
    a <- q$n_components
    t <- elapsed(plsr(y ~ X, ncomp = a, data = state$data, method = q$method, scale = q$scale, validation = "none"))
    state$model <- t$value
    answer(elapsed_s = t$s)
  } else if (q$op == "predict") {
    a <- q$n_components
    t <- elapsed(predict(state$model, newdata = state$data, ncomp = a))
    out <- file(q$out, "wb")
    writeBin(as.double(t(matrix(t$value, nrow = nrow(state$x)))), out, endian = "little")
    close(out)
    answer(elapsed_s = t$s, rows = nrow(state$x), columns = ncol(state$y))
  }
}
