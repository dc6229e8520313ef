package fault

// Partition lets nothing through any more between service and database. The database is not told:
// it keeps the transaction open, with all that it has locked.
var Partition = Kind{
	Name:   "partition",
	Doc:    "cuts the database off before the COMMIT: its transaction stays open, and the request hangs until its client leaves",
	Places: []Place{InCommit},
	Cuts:   true,
	Strike: func(r Request, _ Settings) error {
		if err := r.Cut(CutSilent); err != nil {
			return err
		}
		r.Hold()
		return ErrEnded
	},
}
