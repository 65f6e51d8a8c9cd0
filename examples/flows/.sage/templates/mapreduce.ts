// Counts the words of 500 files, sixteen at a time, and puts the counts together.

type Counted = { file: string; words: number };

export default async (sage: Sage, input: { files?: number }) => {
  const files: string[] = await sage.shell(
    { run: "sh agents/texts.sh \"$FILES\"", env: { FILES: String(input.files ?? 500) }, json: true },
    { label: "texts" },
  );

  sage.phase("map");
  const count = (file: string) => async (): Promise<Counted> => {
    const said = await sage.shell({ argv: ["wc", "-w", file] }, { label: "count" });
    return { file, words: parseInt(said.stdout, 10) };
  };
  const counted: Counted[] = await sage.parallel(files.map(count), { limit: 16 });

  sage.phase("reduce");
  const words = counted.reduce((sum, it) => sum + it.words, 0);
  const longest = counted.reduce((a, b) => (b.words > a.words ? b : a));
  const report = `# Words\n\n${files.length} files, ${words} words. The longest is ${longest.file} with ${longest.words}.\n`;
  await sage.shell({ run: "mkdir -p dist && printf '%s' \"$REPORT\" > dist/words.md", env: { REPORT: report } }, { label: "report" });
  return { files: files.length, words, longest };
};
