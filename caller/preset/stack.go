package preset

import (
	"errors"
	"fmt"
	"slices"

	"retrylab/caller/policy"
)

// Stack is several presets, one inside the other, that are found together so often that they have a
// name and cells of their own.
type Stack struct {
	Name    string      // as it is asked for
	Entry   string      // its id in the collection of facts that its cells come from
	Title   string      // what it is made of
	Doc     string      // one line
	Presets []string    // outermost first
	Body    policy.Body // how the innermost client sends a body that is not empty

	words []word
}

// Stacks lists every stack.
var Stacks = []*Stack{FeignLB}

// FeignLB is the stack of a Spring Cloud application that has a Retryer bean and spring-retry on its
// classpath.
var FeignLB = &Stack{
	Name:    "feign-lb",
	Entry:   "stack-feign-lb",
	Title:   "Feign's retryer over Spring Cloud LoadBalancer over HttpURLConnection",
	Doc:     "F·(1+S)·(1+N) requests for one call, and twice that where the JDK resends.",
	Presets: []string{"feign-retryer", "spring-lb", "httpurlconnection"},
	Body:    policy.Fixed,
	words:   slices.Concat(feignWords(), feignRetryerWords(), springLBWords("spring-lb"), []word{onClasspath}),
}

// FindStack returns the stack with the given name or entry.
func FindStack(name string) (*Stack, bool) {
	for _, s := range Stacks {
		if name != "" && (s.Name == name || s.Entry == name) {
			return s, true
		}
	}
	return nil, false
}

// Validate reports what is missing in s.
func (s *Stack) Validate() error {
	var errs []error
	if s.Name == "" || s.Title == "" || s.Doc == "" {
		errs = append(errs, errors.New("name, title and doc must be there"))
	}
	if len(s.Presets) < 2 {
		errs = append(errs, errors.New("a stack has two layers at least"))
	}
	for _, name := range s.Presets {
		if _, ok := Find(name); !ok {
			errs = append(errs, fmt.Errorf("no preset %q", name))
		}
	}
	if !slices.Contains(policy.Bodies, s.Body) {
		errs = append(errs, errors.New("body: not a kind of body"))
	}
	if len(errs) > 0 {
		return fmt.Errorf("stack %q: %w", s.Name, errors.Join(errs...))
	}
	return nil
}
