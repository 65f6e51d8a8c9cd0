export const meta = {
  name: 'pipeline',
  description: 'Each file through reading, judging and mending without waiting for the others',
  phases: [{ title: 'Read' }, { title: 'Judge' }, { title: 'Mend' }],
}

const files = args ?? ['a.py', 'b.py', 'c.py', 'd.py']
const VERDICT = { type: 'object', required: ['ok'], properties: { ok: { type: 'boolean' }, why: { type: 'string' } } }

const results = await pipeline(
  files,
  (file) => agent(`Summarize ${file}`, { label: `read ${file}`, phase: 'Read' }),
  async (summary, file, index) => {
    const verdict = await agent(`Is ${file} fine? It says: ${summary}`, { label: `judge ${file}`, phase: 'Judge', schema: VERDICT })
    return { file, index, summary, ...verdict }
  },
  (judged) => {
    if (judged.ok) return { ...judged, mended: false }
    return agent(`Mend ${judged.file}: ${judged.why}`, { label: `mend ${judged.file}`, phase: 'Mend' }).then((said) => ({ ...judged, mended: said }))
  }
)
return results
