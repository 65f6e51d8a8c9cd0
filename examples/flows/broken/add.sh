# Adds two numbers.
echo $(($1 - $2))
