// Sphinx's scores, but a heading that holds the whole query comes before pages that use its words.
var Scorer = {
  score: ([, , , , score, , kind]) => (kind === "title" ? score + 20 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
