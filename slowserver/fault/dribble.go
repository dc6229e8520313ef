package fault

// Dribble writes the answer in small pieces, so slowly that no read time-out notices.
var Dribble = Kind{
	Name:    "dribble",
	Doc:     "writes the answer in chunks, with silence before each",
	Answers: true,
	Places:  []Place{InReply},
	Takes:   []string{"chunks", "chunk-size", "pause"},
	Strike: func(r Request, s Settings) error {
		r.Dribble(s.Chunks, s.ChunkSize, s.Pause)
		return ErrEnded
	},
}
