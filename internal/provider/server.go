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
// want to wait for. And it answers itself what nothing is wrong with, at a
// fraction of the framework's cost: see reading.
type Server struct {
	tfprotov6.ProviderServer
	provider           *statecrypt
	dataSources        map[string]reading // :: name → reading
	ephemeralResources map[string]reading

	mu      sync.Mutex
	stopped chan struct{} // closed by Stop
}

// NewServer returns the server of one CLI.
func NewServer(version string) *Server {
	return newServer(newStatecrypt(version, builtinCatalog()))
}

func newServer(p *statecrypt) *Server {
	return &Server{
		ProviderServer: providerserver.NewProtocol6(p)(),
		provider:       p, dataSources: byName(p.dataSources), ephemeralResources: byName(p.ephemeralResources),
		stopped: make(chan struct{}),
	}
}

func byName(readings []reading) map[string]reading {
	out := map[string]reading{}
	for _, r := range readings {
		out[r.name] = r
	}
	return out
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

// ValidateDataResourceConfig checks the arguments of a data source.
func (s *Server) ValidateDataResourceConfig(ctx context.Context, req *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	if r, ok := s.dataSources[req.TypeName]; ok && r.accepts(req.Config) {
		return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
	}
	return s.ProviderServer.ValidateDataResourceConfig(ctx, req)
}

// ReadDataSource is a read that Stop ends.
func (s *Server) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	ctx, end := s.stoppable(ctx)
	defer end(nil)
	if r, ok := s.dataSources[req.TypeName]; ok {
		if value, diags, ok := r.answer(ctx, s.provider.configured.Load(), req.Config); ok {
			return &tfprotov6.ReadDataSourceResponse{State: value, Diagnostics: diags}, nil
		}
	}
	return s.ProviderServer.ReadDataSource(ctx, req)
}

// ValidateEphemeralResourceConfig checks the arguments of an ephemeral resource.
func (s *Server) ValidateEphemeralResourceConfig(ctx context.Context, req *tfprotov6.ValidateEphemeralResourceConfigRequest) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	if r, ok := s.ephemeralResources[req.TypeName]; ok && r.accepts(req.Config) {
		return &tfprotov6.ValidateEphemeralResourceConfigResponse{}, nil
	}
	return s.ProviderServer.ValidateEphemeralResourceConfig(ctx, req)
}

// OpenEphemeralResource is a read that Stop ends.
func (s *Server) OpenEphemeralResource(ctx context.Context, req *tfprotov6.OpenEphemeralResourceRequest) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	ctx, end := s.stoppable(ctx)
	defer end(nil)
	if r, ok := s.ephemeralResources[req.TypeName]; ok {
		if value, diags, ok := r.answer(ctx, s.provider.configured.Load(), req.Config); ok {
			return &tfprotov6.OpenEphemeralResourceResponse{Result: value, Diagnostics: diags}, nil
		}
	}
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
