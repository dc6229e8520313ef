// Package lab is the vocabulary of the laboratory: events, effects, observations, verdicts and
// results as plain data. It is the floor that every other room stands on. It imports nothing of
// ours and only the standard library, opens nothing, waits for nothing and decides nothing.
package lab
