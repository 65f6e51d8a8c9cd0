export const meta = {
  name: 'worktrees',
  description: 'Two agents write the same file at once, each in a worktree of its own',
  phases: [{ title: 'Write' }, { title: 'Compare' }],
}

phase('Write')
const written = await parallel(['red', 'blue'].map((color) => () =>
  agent(`Paint the door ${color}.`, { label: `paint ${color}`, isolation: 'worktree', agentType: 'painter', effort: 'low' })
))
phase('Compare')
const same = await agent('Look at the door in the project itself.', { label: 'look' })
return { written, same }
