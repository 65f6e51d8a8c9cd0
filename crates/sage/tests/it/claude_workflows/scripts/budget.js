export const meta = {
  name: 'budget',
  description: 'Go deeper as long as the budget lasts',
}

const done = []
let refused = null
while (done.length < 20) {
  try {
    done.push(await agent(`Go deeper, part ${done.length + 1}.`, { label: `part ${done.length + 1}` }))
  } catch (error) {
    refused = error.message
    break
  }
}
return {
  parts: done.length, refused: refused !== null, words: refused !== null && refused.includes('budget'),
  total: budget.total, left: budget.remaining(), spent: budget.spent(),
}
