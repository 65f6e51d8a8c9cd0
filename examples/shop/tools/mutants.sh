#!/bin/sh
# How well is a module tested? Turns comparisons around, one at a time, in a copy of the project, and runs the
# tests on each: a change that no test notices is a gap. Prints JSON. Usage: tools/mutants.sh shop/cart.py [max]
set -eu
file=$1
max=${2:-6}

if ! command -v python3 >/dev/null; then
    printf '{"file": "%s", "ran": false, "reason": "python3 is not installed"}\n' "$file"
    exit 0
fi

# In a run the copy belongs to the attempt, so that nothing is left in /tmp after a kill.
copy=${SAGE_INPUT:+${SAGE_INPUT%/*}/copy}
copy=${copy:-$(mktemp -d)}
trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy"
cp -R shop tests data "$copy"
export PYTHONDONTWRITEBYTECODE=1

tried=0
missed=
for line in $(grep -nE ' (<|>|<=|>=|==|!=) ' "$file" | cut -d: -f1 | head -n "$max"); do
    sed "$line"'{
        s/ < / >= /; t
        s/ > / <= /; t
        s/ <= / > /; t
        s/ >= / < /; t
        s/ == / != /; t
        s/ != / == /
    }' "$file" > "$copy/$file"
    tried=$((tried + 1))
    if (cd "$copy" && python3 -m unittest -q) >/dev/null 2>&1; then
        missed="$missed${missed:+, }$line"
    fi
done
printf '{"file": "%s", "ran": true, "tried": %d, "missedLines": [%s]}\n' "$file" "$tried" "$missed"
