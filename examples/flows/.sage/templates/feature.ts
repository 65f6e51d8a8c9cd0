// The template `feature` that comes with Sage, in code. Named operations bring their own prompts; `steps` shows
// them what was found before.
import { enough } from "./lib/enough.ts";

export default async (sage: Sage) => {
  const specs = `docs/specs/${sage.feature}`;

  sage.phase("research");
  const research = await enough(0.75, {
    "research/market": sage.run("research.market"),
    "research/competitive": sage.run("research.competitive"),
    "research/practices": sage.run("research.practices"),
    "research/patterns": sage.run("patterns.extract", {}, { label: "patterns", output: `${specs}/patterns.md` }),
    "research/standards": sage.run("standards.discover", {}, { label: "standards" }),
    "research/skills": sage.run("skills.discover", {}, { label: "skills" }),
  });
  sage.log(`${Object.keys(research).length} of 6 sides are known`);

  sage.phase("specification");
  const spec = await sage.run("specify", {}, { steps: research, output: `${specs}/spec.md` });

  sage.phase("planning");
  const known = { ...research, "specification/specify": spec };
  const plan = await sage.run("plan", {}, { steps: known, output: `${specs}/plan.md` });
  const tickets = await sage.run("tickets.create", {}, { label: "tickets", steps: { "planning/plan": plan } });

  sage.phase("implementation");
  const done = await sage.run<{ filesChanged: string[] }>("implement", {}, { steps: { ...known, "planning/plan": plan } });
  // Where nothing was changed there is nothing to test.
  if (done.filesChanged.length > 0) {
    await sage.run("test.run", {}, { label: "tests", steps: { "implementation/implement": done } });
  }
  await sage.run("tickets.update", {}, { label: "tickets", steps: { "implementation/implement": done } });
  return { sides: Object.keys(research).length, tickets, done };
};
