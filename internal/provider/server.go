package provider

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

var errStopped = fmt.Errorf("the read was stopped, because the run was interrupted: %w", context.Canceled)

// Server is the provider as a CLI talks to it. Beyond what the framework does,
// it stays stopped: a CLI that was interrupted goes on with all the reads that
// it has planned, and each of them would wait again for whom the user did not
// want to wait for.
type Server struct {
	tfprotov6.ProviderServer

	mu      sync.Mutex
	stopped chan struct{} // closed by Stop
}

// NewServer returns the server of one CLI.
func NewServer(version string) *Server {
	return &Server{ProviderServer: providerserver.NewProtocol6(New(version)())(), stopped: make(chan struct{})}
}

// Stop ends the reads that are under way, and those to come until the provider
// is configured again. It does not wait.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.stopped:
	default:
		close(s.stopped)
	}
}

// StopProvider is the CLI's word that the user has interrupted it.
func (s *Server) StopProvider(ctx context.Context, req *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	s.Stop()
	return s.ProviderServer.StopProvider(ctx, req)
}

// ConfigureProvider begins a run. A provider in a debugger sees several.
func (s *Server) ConfigureProvider(ctx context.Context, req *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	s.mu.Lock()
	select {
	case <-s.stopped:
		s.stopped = make(chan struct{})
	default:
	}
	s.mu.Unlock()
	return s.ProviderServer.ConfigureProvider(ctx, req)
}

// ReadDataSource is a read that Stop ends.
func (s *Server) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	ctx, end := s.stoppable(ctx)
	defer end(nil)
	return s.ProviderServer.ReadDataSource(ctx, req)
}

// OpenEphemeralResource is a read that Stop ends.
func (s *Server) OpenEphemeralResource(ctx context.Context, req *tfprotov6.OpenEphemeralResourceRequest) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	ctx, end := s.stoppable(ctx)
	defer end(nil)
	return s.ProviderServer.OpenEphemeralResource(ctx, req)
}

func (s *Server) stoppable(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	s.mu.Lock()
	stopped := s.stopped
	s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	select {
	case <-stopped: // at once, so that nothing is begun
		cancel(errStopped)
	default:
		go func() {
			select {
			case <-stopped:
				cancel(errStopped)
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}
