export const meta = {
  name: 'losses',
  description: 'Some agents die, the rest goes on',
  phases: [{ title: 'Work' }, { title: 'Sum' }],
}

phase('Work')
const answers = await parallel([1, 2, 3, 4, 5].map((n) => () => agent(`Work on part ${n}.`, { label: `part ${n}` })))
const thrown = await parallel([
  () => { throw new Error('of my own') },
  async () => 'fine',
])
const piped = await pipeline(
  [1, 2, 3],
  (n) => n * 2,
  (n, item) => { if (item === 2) throw new Error('drop it'); return n },
)
phase('Sum')
const alive = answers.filter((answer) => answer !== null)
const sum = await agent(`Sum up ${alive.length} of ${answers.length} parts: ${alive.join('; ')}`, { label: 'sum' })
return { answers, thrown, piped, sum }
