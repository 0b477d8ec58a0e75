/** What well-known tokenizers put around a text and after a sentence, by the size of their vocabulary. */
const knownVocabularies: Readonly<Record<number, KnownVocabulary>> = {
  30_522: { first: 101, last: 102, stop: 1012, firstWord: 1996 },
  28_996: { first: 101, last: 102, stop: 119, firstWord: 1103 },
  21_128: { first: 101, last: 102, stop: 511, firstWord: 672 },
  119_547: { first: 101, last: 102, stop: 119, firstWord: 10_105 },
  50_265: { first: 0, last: 2, stop: 4, firstWord: 5 },
  250_002: { first: 0, last: 2, stop: 5, firstWord: 10 },
};

interface KnownVocabulary {
  readonly first: number;
  readonly last: number;
  readonly stop: number;
  readonly firstWord: number;
}

/** Share of other vocabularies before the words: bytes, letters, and what is never used. */
const unusedShare = 0.01;

/**
 * Ids of a text: words as frequent as the inverse of their rank (Zipf's law), which tokenizers
 * number by frequency, in sentences of 5 to 20 words, some of which come back.
 */
export function writeSentences(length: number, vocabulary: number, random: () => number): number[] {
  const known = knownVocabularies[vocabulary];
  const firstWord = known?.firstWord ?? Math.floor(vocabulary * unusedShare);
  const count = vocabulary - firstWord;
  const ids: number[] = known === undefined ? [] : [known.first];
  let left = 5 + Math.floor(16 * random());
  while (ids.length < length) {
    if (known !== undefined && (left-- === 0 || ids.length === length - 2)) {
      ids.push(known.stop);
      left = 5 + Math.floor(16 * random());
    } else {
      const earlier = ids[Math.floor(ids.length * random())];
      const isTopic = earlier !== undefined && earlier > firstWord + 200 && random() < 0.3;
      ids.push(isTopic ? earlier : firstWord + Math.floor(count ** random()) - 1);
    }
  }
  if (known !== undefined && length > 2) ids[length - 1] = known.last;
  return ids.slice(0, length);
}
