import { tensorNumbers, type Sample } from "../evaluate/tensor-data.ts";

/** Names the first input that has NaN; undefined where there is none. */
export async function findNotANumber(samples: AsyncIterable<Sample>): Promise<string | undefined> {
  let index = 0;
  for await (const sample of samples) {
    index += 1;
    const tensor = sample.find((each) => tensorNumbers(each).some(Number.isNaN));
    if (tensor !== undefined) return `input "${tensor.name}" of sample ${index} has NaN`;
  }
  return undefined;
}
