export const meta = {
  name: 'map-reduce',
  description: 'Count in every file, then put the counts together in steps',
  phases: [{ title: 'Map' }, { title: 'Reduce' }],
}

const COUNT = { type: 'object', required: ['count'], properties: { count: { type: 'integer' } } }
if (!args || !Array.isArray(args.files)) throw new Error('args.files must be a list')

phase('Map')
let counts = (await parallel(args.files.map((file) => () =>
  agent(`Count the words of ${file}.`, { label: `map ${file}`, schema: COUNT })
))).filter(Boolean).map((it) => it.count)

phase('Reduce')
let round = 0
while (counts.length > 1) {
  round++
  const pairs = []
  for (let i = 0; i < counts.length; i += 3) pairs.push(counts.slice(i, i + 3))
  counts = (await parallel(pairs.map((pair, n) => () =>
    agent(`Add ${pair.join(' + ')}`, { label: `reduce ${round}.${n}`, schema: COUNT })
  ))).map((it) => it.count)
}
return { files: args.files.length, total: counts[0] ?? 0, rounds: round }
