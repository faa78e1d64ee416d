# Each line as a string of C.
s/[\\"]/\\&/g
s/^/"/
s/$/\\n"/
