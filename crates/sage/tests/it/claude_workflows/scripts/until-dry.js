export const meta = {
  name: 'until-dry',
  description: 'Search until two rounds in a row find nothing new',
}

const FOUND = { type: 'object', required: ['found'], properties: { found: { type: 'array', items: { type: 'string' } } } }
const seen = new Set()
let dry = 0
let round = 0
while (dry < 2 && round < 10) {
  round++
  phase(`Round ${round}`)
  const known = [...seen].sort().join(', ') || 'nothing'
  const answers = await parallel(['names', 'types'].map((where) => () =>
    agent(`Search by ${where}. Round ${round}. Already known: ${known}.`, { label: `by ${where}`, schema: FOUND })
  ))
  const fresh = answers.filter(Boolean).flatMap((it) => it.found).filter((it) => !seen.has(it))
  fresh.forEach((it) => seen.add(it))
  dry = fresh.length === 0 ? dry + 1 : 0
  log(`round ${round}: ${fresh.length} new`)
}
return { rounds: round, found: [...seen].sort() }
