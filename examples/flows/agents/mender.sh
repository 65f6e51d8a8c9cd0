# Plays an agent that mends code: reads what failed, and mends that and nothing else.
prompt=$(cat)
case $prompt in
    *"add 2 3"*)
        sed -i 's/\$1 - \$2/$1 + $2/' work/add.sh
        echo "add.sh adds now" ;;
    *"greet Ann"*)
        sed -i 's/Helo/Hello/' work/greet.sh
        echo "greet.sh says Hello" ;;
    *) echo "I do not know how to mend this" >&2; exit 1 ;;
esac
