"""Does a run reproduce a paper? From the tables of a paper to targets, runs, comparisons and a verdict."""
