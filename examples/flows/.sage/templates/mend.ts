// Runs the tests and lets an agent mend what fails, until all is green or three rounds have not been enough.

type Round = { failed: string; mended: string };

export default async (sage: Sage, input: { agent?: string; rounds?: number }) => {
  const most = input.rounds ?? 3;
  const test = { run: "sh tests.sh", cwd: "work" };

  // The broken project stays as it is; work goes on in a copy.
  await sage.shell("rm -rf work && cp -r broken work", { label: "copy" });

  sage.phase("mend");
  const rounds: Round[] = [];
  for (;;) {
    // An equal command is another call each time: it is counted.
    const failed: string | null = await sage.shell(test, { label: "test" }).then(() => null, (error) => error.message);
    if (failed === null) return { green: true, rounds };
    if (rounds.length === most) throw new Error(`still red after ${most} rounds: ${failed}`);
    sage.log(`round ${rounds.length + 1}: ${failed.split("\n").pop()}`);
    const mended = await sage.agent("mender", {
      agent: input.agent ?? "mender",
      prompt: `In the folder work/, sh tests.sh fails:\n${failed}\nMend the code, not the tests. Say in one line what you did.`,
    });
    rounds.push({ failed, mended });
  }
};
