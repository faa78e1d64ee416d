// SPDX-License-Identifier: Apache-2.0
// How the search orders what it finds: a function whose name is asked for, pages for those who use jot, the reference
// without members of structs, pages about the insides.
var searched = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();
var splitQuery = (query) =>
    query.replace(/c\+\+/gi, "cpp").split(/[^\p{Letter}\p{Number}_]+/gu).filter((word) => word);
var Scorer = {
    score: ([page, title, place, text, score]) =>
        score +
        (title.toLowerCase() === "jot_" + searched ? 20 : 0) +
        (/^#c\.\w+\.\w/.test(place) ? -30 : 0) +
        (/manual\/(start|ideas|howto)/.test(page) ? 11 : /manual/.test(page) ? 0 : /^docs/.test(page) ? -6 : -20),
    objNameMatch: 18,
    objPartialMatch: 4,
    objPrio: { 0: 15, 1: 5, 2: -5 },
    objPrioDefault: 0,
    title: 15,
    partialTitle: 7,
    term: 5,
    partialTerm: 2,
};
