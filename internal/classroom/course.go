package classroom

import (
	"encoding/json"
	"fmt"
	"slices"
)

// courseVersion is that of the file that keeps a place.
const courseVersion = 1

// Place is where somebody is in a course.
type Place struct {
	Version int      `json:"version"`
	Now     string   `json:"now,omitempty"` // the scenario to begin with; empty for the first
	Done    []string `json:"done"`          // those that were told to their end
}

// ReadPlace reads what [Place.Bytes] has written.
func ReadPlace(data []byte) (Place, error) {
	var p Place
	if err := json.Unmarshal(data, &p); err != nil {
		return Place{}, fmt.Errorf("it is not what was written there: %w", err)
	}
	if p.Version != courseVersion {
		return Place{}, fmt.Errorf("it has the version %d, and this retrylab knows %d", p.Version, courseVersion)
	}
	return p, nil
}

// Bytes is the content of the file that keeps a place.
func (p Place) Bytes() []byte {
	p.Version = courseVersion
	if p.Done == nil {
		p.Done = []string{}
	}
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		panic(err) // there are only strings in it
	}
	return append(data, '\n')
}

// At is the number of the scenario to go on with, of those of a course. Where the one that was kept is not
// among them any more, it is the first that is not done.
func (p Place) At(course []string) int {
	if i := slices.Index(course, p.Now); i >= 0 {
		return i
	}
	for i, name := range course {
		if !slices.Contains(p.Done, name) {
			return i
		}
	}
	return 0
}

// Finish marks a scenario as done, and goes on to the next one; after the last, to none.
func (p *Place) Finish(course []string, name string) {
	if !slices.Contains(p.Done, name) {
		p.Done = append(p.Done, name)
	}
	p.Pass(course, name)
}

// Pass goes on to the scenario after one, without marking it.
func (p *Place) Pass(course []string, name string) {
	p.Now = ""
	if i := slices.Index(course, name); i >= 0 && i+1 < len(course) {
		p.Now = course[i+1]
	}
}
