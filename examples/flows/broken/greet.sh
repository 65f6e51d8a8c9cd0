# Greets somebody.
echo "Helo, $1!"
