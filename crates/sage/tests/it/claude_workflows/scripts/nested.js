export const meta = {
  name: 'nested',
  description: 'Other workflows inside of this one, by name and by path',
}

phase('Inside')
const [reviewed, mapped] = await Promise.all([
  workflow('fan-out'),
  workflow({ scriptPath: '.claude/workflows/map-reduce.js' }, { files: ['x.txt', 'y.txt'] }),
])
phase('After')
const said = await agent(`Compare ${reviewed.findings.length} findings with ${mapped.files} files.`, { label: 'compare' })
return { findings: reviewed.findings.length, mapped, said }
