# Plays an agent that reviews shell scripts: it knows two mistakes.
prompt=$(cat)
case $prompt in
    "Review the file "*)
        file=${prompt#Review the file }
        file=${file%%. *}
        list=
        grep -q 'Helo' "$file" && list='"a typo: Helo"'
        grep -q '\$1 - \$2' "$file" && list='"it takes away"'
        echo "{\"findings\": [$list]}" ;;
    "Doubt this finding"*) echo '{"real": true}' ;;
    *) echo "nobody taught me that" >&2; exit 1 ;;
esac
