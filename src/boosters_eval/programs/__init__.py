"""The programs: what users ask for, each a folder with a request at one end and a document at the other."""
