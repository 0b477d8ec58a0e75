const rowsPerInsert = 200;

/** The rows in parts that are inserted by one statement each. */
export function* chunkRows<T>(rows: readonly T[]): Generator<T[]> {
  for (let start = 0; start < rows.length; start += rowsPerInsert) {
    yield rows.slice(start, start + rowsPerInsert);
  }
}
