export const meta = {
  name: 'judges',
  description: 'Three attempts at a design, a panel of judges, the best one finished with what was good elsewhere',
  phases: [{ title: 'Attempts' }, { title: 'Judging' }, { title: 'Synthesis' }],
}

const ANGLES = ['the smallest thing that works', 'the safest', 'what users see first']
const SCORE = {
  type: 'object', required: ['score', 'good'],
  properties: { score: { type: 'integer', minimum: 0, maximum: 10 }, good: { type: 'string' } },
}
const design = args && args.design ? args.design : 'a login page'

const attempts = await pipeline(
  ANGLES,
  (angle) => agent(`Design ${design}, first of all ${angle}.`, { label: `attempt: ${angle}`, phase: 'Attempts' }),
  async (text, angle) => {
    const scores = await parallel([1, 2].map((judge) => () =>
      agent(`Judge ${judge}: score this design from 0 to 10.\n${text}`, { label: `judge ${judge}: ${angle}`, phase: 'Judging', schema: SCORE })))
    const given = scores.filter(Boolean)
    return { angle, text, score: given.reduce((sum, it) => sum + it.score, 0) / given.length, good: given.map((it) => it.good) }
  }
)
const ranked = attempts.filter(Boolean).sort((a, b) => b.score - a.score)
phase('Synthesis')
const final = await agent(
  `Finish this design:\n${ranked[0].text}\nTake from the others: ${ranked.slice(1).flatMap((it) => it.good).join(', ')}`,
  { label: 'finish' })
return { winner: ranked[0].angle, scores: ranked.map((it) => it.score), final }
