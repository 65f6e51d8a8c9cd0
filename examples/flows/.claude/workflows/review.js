export const meta = {
  name: 'review',
  description: 'Review every broken script, then let somebody doubt each finding',
  phases: [{ title: 'Review' }, { title: 'Doubt' }],
}

const FILES = (args && args.files) || ['broken/add.sh', 'broken/greet.sh', 'broken/tests.sh']
const FINDINGS = {
  type: 'object',
  required: ['findings'],
  properties: { findings: { type: 'array', items: { type: 'string' } } },
}
const VOTE = { type: 'object', required: ['real'], properties: { real: { type: 'boolean' } } }

const reviews = await pipeline(
  FILES,
  (file) => agent(`Review the file ${file}. List what is wrong with it.`, { label: file, phase: 'Review', schema: FINDINGS }),
  async (review, file) => {
    const votes = await parallel(review.findings.map((finding) => () =>
      agent(`Doubt this finding about the file ${file}: ${finding}`, { label: `doubt ${file}`, phase: 'Doubt', schema: VOTE })))
    return { file, real: review.findings.filter((_, index) => votes[index] && votes[index].real) }
  }
)
const found = reviews.filter(Boolean).filter((review) => review.real.length > 0)
log(`${found.length} of ${FILES.length} files have something to mend`)
return found
