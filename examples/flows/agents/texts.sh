# Writes so many small texts to work/texts and prints their names as a JSON list.
mkdir -p work/texts
awk -v files="${1:-500}" 'BEGIN {
    printf "["
    for (n = 1; n <= files; n++) {
        file = sprintf("work/texts/%03d.txt", n)
        for (word = 0; word < n % 7 + 1; word++) printf "word%d ", word > file
        close(file)
        printf("%s\"%s\"", (n > 1 ? "," : ""), file)
    }
    print "]"
}'
