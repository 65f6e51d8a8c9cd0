//! Kill -9 at random moments of a workflow in code, at limits 1, 2 and 100.

use super::whole;
use crate::dsl::{Sage, long};
use crate::killing::Killing;

/// A list, a fan-out with two stages each, caught failures, code in code, a template in code, a large result.
const BODY: &str = r#"
  const did = (what: string, then = "") => `echo "$SAGE_STEP ${what}" >> "$SAGE_FEATURE.out"; ${then}`;
  sage.phase("Seed");
  const list: number[] = await sage.shell({ run: did("list", "echo '[3,1,2]'"), json: true });
  sage.phase("Fan");
  const fan = list.map(async (width) => {
    await sage.sleep(10);
    const rows = await Promise.all([...Array(width).keys()].map((n) => sage.shell(did(`row ${width}.${n}`, `echo ${width}.${n}`))));
    const joined = rows.map((row) => row.stdout.trim()).join(" ");
    const inner = await sage.workflow("inner", { width });
    return [joined, inner, (await sage.shell(did(`join ${width}`, `echo "${joined}"`))).stdout];
  });
  const bad = sage.shell(did("bad", "exit 1"), { label: "bad" }).catch((error) => error.code);
  const big = sage.shell(did("big", "head -c 80000 /dev/zero | tr '\\0' x"), { label: "big" });
  const plain = sage.workflow("plain");
  const results = await Promise.all(fan);
  sage.phase("End");
  let round = 0;
  while (round < 4) round = Number((await sage.shell(did(`round ${round}`, `echo $((${round} + 1))`))).stdout);
  sage.log("almost");
  await plain;
  return { results, bad: await bad, big: (await big).stdout.length, round, chance: typeof Math.random() };"#;

const INNER: &str = r#"
  const said = await sage.agent("inner", { prompt: `width ${input.width}`, params: {
    script: [{ run: `echo "$SAGE_STEP inner ${input.width}" >> "$SAGE_FEATURE.out"`, result: { width: input.width } }] } });
  return said.width * 2;"#;

const PLAIN: &str = r#"
name: plain
phases:
  - id: p
    operations: { id: s, type: shell, params: { run: 'echo "$SAGE_STEP plain" >> "$SAGE_FEATURE.out"' } }
"#;

fn storm(limit: &str) {
    let sage = Sage::new().code("t", &whole(BODY)).code("inner", &whole(INNER)).template("plain", PLAIN);
    let seed = limit.parse::<u64>().unwrap() + 40;
    let mut killing = Killing::new(sage, &["-t", "t", "--parallel", limit], 0, seed);
    killing.rage(if long() { 334 } else { 34 });
    killing.tell(&format!("code storm at limit {limit}"));
}

// covers: R21, R5, P8; LESSONS "Resume"
#[test]
fn code_kill_storm_at_limit_1() {
    storm("1");
}

// covers: R21, R5, P8; LESSONS "Resume"
#[test]
fn code_kill_storm_at_limit_2() {
    storm("2");
}

// covers: R21, R5, P8; LESSONS "Resume"
#[test]
fn code_kill_storm_at_limit_100() {
    storm("100");
}
