# An agent without a model: what it answers depends on what it is asked. Every answer costs 1,000 tokens.
prompt=$(cat)
IFS= read -r first <<END
$prompt
END
echo "$SAGE_STEP $first" >> "$OUT/$SAGE_FEATURE.out"
trap 'echo "{\"sage\": {\"usage\": {\"input\": 900, \"output\": 100}$more}}" >&2' EXIT
more=

finding() { printf '{"findings": [{"title": "%s", "severity": "%s"}]}\n' "$1" "$2"; }
vote() { printf '{"refuted": %s, "reason": "looked"}\n' "$1"; }

case $prompt in
    # fan-out
    *"for security"*) finding "open door" high ;;
    *"for performance"*) finding "slow loop" low ;;
    *"Review the tests"*) finding "no test" medium ;;
    "Write one paragraph about: "*) echo "About ${prompt#*: }." ;;

    # pipeline
    "Summarize "*) echo "the text of ${prompt#Summarize }" ;;
    "Is b.py fine?"*) echo '{"ok": false, "why": "a typo"}' ;;
    "Is "*" fine?"*) echo '{"ok": true}' ;;
    "Mend b.py: a typo") echo "mended" ;;

    # skeptics
    "Find bugs in this project.") echo '{"bugs": [{"file": "a.c", "what": "leak"}, {"file": "b.c", "what": "race"}, {"file": "c.c", "what": "ghost"}]}' ;;
    "Skeptic 1: "*ghost | "Skeptic 2: "*ghost | "Skeptic 3: "*leak) vote true ;;
    "Skeptic "*)
        [ "$SAGE_MODEL" = small-1 ] || { echo "asked $SAGE_MODEL" >&2; exit 1; }
        vote false ;;

    # until-dry
    "Search by names. Round 1."*) echo '{"found": ["a", "b"]}' ;;
    "Search by types. Round 2. Already known: a, b, c.") echo '{"found": ["c", "d"]}' ;;
    "Search by types. Round 1."*) echo '{"found": ["b", "c"]}' ;;
    "Search by "*) echo '{"found": ["a"]}' ;;

    # nested
    "Compare "*) echo "compared: $prompt" ;;

    # budget
    "Go deeper, part "*) echo "deep" ;;

    # worktrees
    "Paint the door "*)
        color=${prompt#Paint the door }
        echo "${color%.}" > door.txt
        echo "painted ${color%.} where it is $(cat door.txt)" ;;
    "Look at the door"*) cat door.txt ;;

    # losses
    "Work on part 2."* | "Work on part 4."*) echo "the model is gone" >&2; exit 1 ;;
    "Work on part "*) echo "did ${prompt#Work on }" ;;
    "Sum up "*) echo "$prompt" ;;

    # judges
    "Design "*"first of all the safest"*) echo "SAFE" ;;
    "Design "*"first of all the smallest"*) echo "SMALL" ;;
    "Design "*) echo "PRETTY" ;;
    "Judge 1: "*SAFE) echo '{"score": 9, "good": "locks"}' ;;
    "Judge 2: "*SAFE) echo '{"score": 8, "good": "keys"}' ;;
    "Judge "*SMALL) echo '{"score": 5, "good": "few lines"}' ;;
    "Judge "*) echo '{"score": 3, "good": "colors"}' ;;
    "Finish this design:"*) echo "$prompt" | tail -n 1 ;;

    # map-reduce
    "Count the words of "*)
        name=${prompt#Count the words of }
        echo "{\"count\": $((${#name} - 1))}" ;;
    "Add "*) echo "{\"count\": $((${prompt#Add }))}" ;;

    # what tests ask for themselves
    "say "*) echo "${prompt#say }" ;;
    "model") echo "${SAGE_MODEL:-none}" ;;
    "die") echo "gone" >&2; exit 1 ;;
    "reject") more=', "class": "invalid", "message": "400 no such field"'; exit 1 ;;
    "quota") more=', "class": "quota", "resetAt": "2099-01-01T00:00:00Z"'; exit 1 ;;
    "input") cat "$SAGE_INPUT" ;;
    *) echo "nobody taught me: $prompt" >&2; exit 64 ;;
esac
