package faults

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// RunCosts makes the responses of the faithful server grow, and checks that the client spends no more on them than
// their size allows.
func (s Suite) RunCosts(t *testing.T) {
	answers := amplification.NewAnswers(s.Server(t))
	front := New(t, answers, Options{Hosts: s.Hosts})
	answers.Run(t, func(t *testing.T) func() error {
		client := s.Client(t, front)
		return func() error {
			_, err := client.Ask(t.Context())
			return err
		}
	})
}
