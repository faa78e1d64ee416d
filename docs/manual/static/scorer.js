// SPDX-License-Identifier: Apache-2.0
// How the search orders what it finds: pages for those who use jot come before pages about its insides.
var Scorer = {
    score: ([page, title, place, text, score]) =>
        score + (/manual\/(start|ideas|howto)/.test(page) ? 6 : /manual/.test(page) ? 0 : -6),
    objNameMatch: 18,
    objPartialMatch: 4,
    objPrio: { 0: 15, 1: 5, 2: -5 },
    objPrioDefault: 0,
    title: 15,
    partialTitle: 7,
    term: 5,
    partialTerm: 2,
};
