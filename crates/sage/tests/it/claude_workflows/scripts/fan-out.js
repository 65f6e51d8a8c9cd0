export const meta = {
  name: 'fan-out',
  description: 'Look at a change from several sides at once',
  phases: [{ title: 'Review', detail: 'one agent per side' }, { title: 'Report' }],
}

const SIDES = [
  { key: 'security', prompt: 'Review the change for security problems.' },
  { key: 'performance', prompt: 'Review the change for performance problems.' },
  { key: 'tests', prompt: 'Review the tests of the change.' },
]
const FINDINGS = {
  type: 'object',
  required: ['findings'],
  properties: {
    findings: {
      type: 'array',
      items: {
        type: 'object',
        required: ['title', 'severity'],
        properties: { title: { type: 'string' }, severity: { enum: ['low', 'medium', 'high'] } },
      },
    },
  },
}

phase('Review')
const reviews = await parallel(
  SIDES.map((side) => () => agent(side.prompt, { label: `review:${side.key}`, schema: FINDINGS }))
)
const rank = { high: 0, medium: 1, low: 2 }
const findings = reviews
  .filter(Boolean)
  .flatMap((review) => review.findings)
  .sort((a, b) => rank[a.severity] - rank[b.severity] || a.title.localeCompare(b.title))

phase('Report')
log(`${findings.length} findings from ${reviews.filter(Boolean).length} reviewers`)
const report = await agent(`Write one paragraph about: ${findings.map((f) => f.title).join(', ')}`, { label: 'report' })
return { findings, report }
