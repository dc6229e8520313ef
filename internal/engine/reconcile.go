package engine

import "retrylab/internal/lab"

// reconcile is the job that compares what a caller left open with the database, by the business
// number.
func (r *rig) reconcile(o *lab.Outcome) error {
	n, err := r.store.Count(r.life, o.Operation)
	if err != nil {
		return err
	}
	o.Left, o.Belief, o.Reason = o.Belief, lab.Failed, "reconciled: no order"
	if n > 0 {
		o.Belief, o.Reason = lab.OK, "reconciled: order found"
	}
	r.journal.record(lab.Event{Kind: lab.Reconciled, Operation: o.Operation, Node: "reconciliation", Detail: string(o.Belief)})
	return nil
}
