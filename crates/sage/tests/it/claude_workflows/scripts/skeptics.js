export const meta = {
  name: 'skeptics',
  description: 'Find bugs, then let three skeptics try to refute each of them',
  whenToUse: 'before a release',
  phases: [{ title: 'Find' }, { title: 'Verify', model: 'small-1' }],
}

const BUGS = {
  type: 'object', required: ['bugs'],
  properties: { bugs: { type: 'array', items: { type: 'object', required: ['file', 'what'], properties: { file: { type: 'string' }, what: { type: 'string' } } } } },
}
const VOTE = { type: 'object', required: ['refuted', 'reason'], properties: { refuted: { type: 'boolean' }, reason: { type: 'string' } } }

phase('Find')
const { bugs } = await agent('Find bugs in this project.', { schema: BUGS, label: 'find' })

phase('Verify')
const judged = await parallel(bugs.map((bug) => async () => {
  const votes = await parallel([1, 2, 3].map((n) => () =>
    agent(`Skeptic ${n}: try to refute that ${bug.file} has this bug: ${bug.what}`, { label: `skeptic ${n} of ${bug.what}`, schema: VOTE })
  ))
  const cast = votes.filter(Boolean)
  return { ...bug, refuted: cast.filter((vote) => vote.refuted).length, cast: cast.length }
}))
const confirmed = judged.filter((bug) => bug.refuted * 2 < bug.cast)
log(`${confirmed.length} of ${bugs.length} bugs stand`)
return { confirmed: confirmed.map((bug) => bug.what), all: judged }
