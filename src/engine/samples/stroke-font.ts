/**
 * Glyphs as polylines on a grid of 5 × 9 points, two digits a point (column, row) and a space
 * between lines: capitals and ascenders begin in row 0, small letters in row 2, the baseline is
 * row 6 and descenders end in row 8.
 */
const glyphs: Readonly<Record<string, string>> = {
  a: "4332120305163645 4246",
  b: "0006 0312324345361605",
  c: "4332120305163645",
  d: "4046 4332120305163645",
  e: "04444332120305163645",
  f: "4130201116 0232",
  g: "4332120305163645 42473818",
  h: "0006 0312324346",
  i: "2226 2020",
  k: "0006 4204 1446",
  l: "2026",
  m: "0206 03122326 23324346",
  n: "0206 0312324346",
  o: "123243453616050312",
  p: "0208 0312324345361605",
  r: "0206 031232",
  s: "4212031434453606",
  t: "10152646 0232",
  u: "020516364542 4246",
  v: "022642",
  w: "0216233642",
  x: "0246 4206",
  y: "0226 4218",
  z: "02420646",
  A: "062046 1434",
  B: "00063645443303 0030414233",
  C: "4130100105163645",
  D: "0006264442200000",
  E: "40000646 0333",
  F: "400006 0333",
  H: "0006 4046 0343",
  I: "2026",
  L: "000646",
  M: "0600234046",
  N: "06004640",
  O: "103041453616050110",
  P: "06003041423303",
  R: "06003041423303 2346",
  S: "41301001023344453616",
  T: "0040 2026",
  U: "000516364540",
  "0": "103041453616050110 4105",
  "1": "112026 1636",
  "2": "01103041420646",
  "3": "0040234445361605",
  "4": "3036 300444",
  "5": "4000033344453616",
  "6": "30100105163645443303",
  "7": "00402026",
  "8": "130201103041423313 1304051636454433",
  "9": "4130100102133341 4136",
  "-": "1434",
  ".": "2626",
  ",": "2618",
};

/** Columns from one glyph to the next, and rows of a line from the top of a capital to a descender. */
export const fontGrid = { advance: 6, ascent: 6, rows: 9 } as const;

type Point = readonly [column: number, row: number];

/** The lines of a character; none for one that the font lacks, such as a space. */
export function glyphLines(character: string): readonly (readonly Point[])[] {
  return (glyphs[character] ?? "").split(" ").map((line) => {
    const points: Point[] = [];
    for (let at = 0; at + 1 < line.length; at += 2) {
      points.push([Number(line[at]), Number(line[at + 1])]);
    }
    return points;
  });
}

/** Words of running text. */
const words =
  "the of and to in a is that for it was on are as with at be this have from or had by not but " +
  "some what we can out other were all there when up use your how said an each she which do " +
  "their time if will way about many then them write would like so these her long make thing " +
  "see him two has look more day could go come did number sound no most people my over know " +
  "water than call first who may down side been now find any new work part take get place made " +
  "live where after back little only round man year came show every good me give our under name " +
  "very through just form sentence great think say help low line differ turn cause much mean " +
  "before move right boy old too same tell does set three want air well also play small end put " +
  "home read hand port large spell add even land here must big high such follow act why ask men " +
  "change went light kind off need house picture try us again animal point mother world near " +
  "build self earth father Page 12 2024 No. 7 Total 350.00 Order 89-41 Section 6 Fig. 3 TABLE " +
  "NOTES Annual Report Hamburg North Lane";
const wordList = words.split(" ");

/** Words, one space between them, of at most so many characters. */
export function writeLine(characters: number, random: () => number): string {
  let line = "";
  for (;;) {
    const word = wordList[Math.floor(random() * wordList.length)] ?? "";
    if (line.length + word.length + 1 > characters) return line.trim();
    line += ` ${word}`;
  }
}
