/**
 * Splits pairs of models and targets into batches. As a batch has a job for each of its models and
 * each of its targets, models with the same targets share one. The pairs of a batch keep their
 * order.
 */
export function groupByTargets<Pair extends { readonly model: object; readonly target: string }>(
  pairs: readonly Pair[],
): { models: Pair["model"][]; targets: string[]; pairs: Pair[] }[] {
  const byModel = [...Map.groupBy(pairs, ({ model }) => model).values()];
  const groups = Map.groupBy(byModel, (ofModel) => ofModel.map(({ target }) => target).join(" "));
  return [...groups.values()].map((group) => {
    const all = group.flat();
    return {
      models: [...new Set(all.map(({ model }) => model))],
      targets: [...new Set(all.map(({ target }) => target))],
      pairs: all,
    };
  });
}
