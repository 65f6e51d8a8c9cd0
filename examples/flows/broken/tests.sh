# Stops at the first thing that is wrong.
check() { # what expected got
    [ "$2" = "$3" ] || { echo "$1: expected $2, got $3" >&2; exit 1; }
}
check "add 2 3" 5 "$(sh add.sh 2 3)"
check "greet Ann" "Hello, Ann!" "$(sh greet.sh Ann)"
echo "all is well"
