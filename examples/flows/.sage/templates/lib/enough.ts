/** What has come of several calls at once: their results, if enough of them have one. */
export async function enough<T>(share: number, calls: Record<string, Promise<T>>): Promise<Record<string, T>> {
  const names = Object.keys(calls);
  const ends = await Promise.allSettled(Object.values(calls));
  const found: Record<string, T> = {};
  const lost: string[] = [];
  ends.forEach((end, index) => {
    if (end.status === "fulfilled") found[names[index]] = end.value;
    else lost.push(`${names[index]} (${end.reason.message})`);
  });
  if (names.length - lost.length < share * names.length) throw new Error(`too much is missing: ${lost.join(", ")}`);
  return found;
}
