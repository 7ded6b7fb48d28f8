package provider

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/all"
)

var (
	errStopped       = fmt.Errorf("the read was stopped, because the run was interrupted: %w", context.Canceled)
	errNotConfigured = errors.New("the provider has not been configured")
	errUnknown       = &attr.Error{Unknown: true, Err: errors.New("an argument is not known yet")}
	errMalformed     = errors.New("these arguments do not conform to the provider's schema; this is a bug in the CLI or in the provider, so " +
		"please report it")
)

// Server handles the CLI's protocol calls. It gives the schemas, validates, configures and reads by itself. The
// embedded plugin framework reports arguments that do not conform to the schemas.
//
// Server ignores message fields that it does not mention, so new protocol versions must be checked for new
// fields. It ignores these request fields: the client's capabilities and version, and the module's metadata,
// for which there is no schema. It leaves these response fields empty: deferrals, because no released CLI
// defers (a read that needs an unknown value fails), and the renewal time and private data that keep an
// ephemeral resource open.
type Server struct {
	tfprotov6.ProviderServer
	schemas
	kinds      kinds
	configured atomic.Pointer[configured] // nil before ConfigureProvider
	validated  atomic.Pointer[configured] // nil before ValidateProviderConfig; does not use the environment

	mu      sync.Mutex
	running context.Context // the parent of all read contexts, until Stop
	stop    context.CancelCauseFunc
}

// schemas holds all schemas of the provider.
type schemas struct {
	block              codec              // the provider block
	dataSources        map[string]reading // data sources by name
	ephemeralResources map[string]reading
}

// NewServer returns a server for one CLI, with all built-in kinds.
func NewServer(version string) *Server {
	return newServer(version, builtinKinds())
}

func builtinKinds() kinds {
	return kinds{registry: builtin.Registry(), sources: all.Kinds()}
}

func newServer(version string, c kinds) *Server {
	state := c.stateFields()
	o := schemas{
		block:              newCodec(c.providerFields()),
		dataSources:        byName(c.remoteState(dataSource, state), c.resource(dataSource, state)),
		ephemeralResources: byName(c.remoteState(ephemeralResource, state), c.resource(ephemeralResource, state), derivedKey()),
	}
	s := &Server{
		ProviderServer: providerserver.NewProtocol6(&frameworkProvider{schemas: o, version: version})(),
		schemas:        o,
		kinds:          c,
	}
	s.restart()
	return s
}

func byName(readings ...reading) map[string]reading {
	out := map[string]reading{}
	for _, r := range readings {
		out[r.name] = r
	}
	return out
}

// GetProviderSchema returns all schemas.
func (s *Server) GetProviderSchema(
	context.Context, *tfprotov6.GetProviderSchemaRequest,
) (*tfprotov6.GetProviderSchemaResponse, error) {
	out := &tfprotov6.GetProviderSchemaResponse{
		ServerCapabilities: &tfprotov6.ServerCapabilities{GetProviderSchemaOptional: true, MoveResourceState: true, PlanDestroy: true},
		Provider:           protocolSchema(providerDoc, s.block.fields),
		DataSourceSchemas:  map[string]*tfprotov6.Schema{}, EphemeralResourceSchemas: map[string]*tfprotov6.Schema{},
		Functions: map[string]*tfprotov6.Function{}, ResourceSchemas: map[string]*tfprotov6.Schema{},
	}
	for name, r := range s.dataSources {
		out.DataSourceSchemas[name] = protocolSchema(r.doc, r.fields)
	}
	for name, r := range s.ephemeralResources {
		out.EphemeralResourceSchemas[name] = protocolSchema(r.doc, r.fields)
	}
	return out, nil
}

// ValidateProviderConfig reports the mistakes that it can find without the environment.
func (s *Server) ValidateProviderConfig(
	ctx context.Context, req *tfprotov6.ValidateProviderConfigRequest,
) (*tfprotov6.ValidateProviderConfigResponse, error) {
	block, ok := s.block.decode(req.Config)
	if ok {
		validated, problems := s.kinds.configure(block, nil)
		s.validated.Store(validated)
		return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: req.Config, Diagnostics: problemDiagnostics(problems)}, nil
	}
	diags, err := s.block.malformed(req.Config, block, func() ([]*tfprotov6.Diagnostic, error) {
		resp, err := s.ProviderServer.ValidateProviderConfig(ctx, req)
		return resp.Diagnostics, err
	})
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: req.Config, Diagnostics: diags}, err
}

// ConfigureProvider starts a run; under a debugger, one process serves several runs. It contacts no server,
// and accepts values that are not known yet.
func (s *Server) ConfigureProvider(
	ctx context.Context, req *tfprotov6.ConfigureProviderRequest,
) (*tfprotov6.ConfigureProviderResponse, error) {
	s.restart()
	if block, ok := s.block.decode(req.Config); ok {
		configured, problems := s.kinds.configure(block, world.Here().Lookup)
		s.configured.Store(configured)
		return &tfprotov6.ConfigureProviderResponse{Diagnostics: problemDiagnostics(problems)}, nil
	}
	s.configured.Store(nil)
	resp, err := s.ValidateProviderConfig(ctx, &tfprotov6.ValidateProviderConfigRequest{Config: req.Config})
	return &tfprotov6.ConfigureProviderResponse{Diagnostics: resp.Diagnostics}, err
}

// ValidateDataResourceConfig checks the arguments of a data source.
func (s *Server) ValidateDataResourceConfig(
	ctx context.Context, req *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	diags, err := s.validate(s.dataSources[req.TypeName], req.Config, func() ([]*tfprotov6.Diagnostic, error) {
		resp, err := s.ProviderServer.ValidateDataResourceConfig(ctx, req)
		return resp.Diagnostics, err
	})
	return &tfprotov6.ValidateDataResourceConfigResponse{Diagnostics: diags}, err
}

// ReadDataSource reads a data source. Stop cancels the read.
func (s *Server) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	r := s.dataSources[req.TypeName]
	if arguments, ok := r.decode(req.Config); ok {
		value, diags := s.read(ctx, r, arguments)
		return &tfprotov6.ReadDataSourceResponse{State: value, Diagnostics: diags}, nil
	}
	resp, err := s.ValidateDataResourceConfig(ctx,
		&tfprotov6.ValidateDataResourceConfigRequest{TypeName: req.TypeName, Config: req.Config})
	return &tfprotov6.ReadDataSourceResponse{Diagnostics: resp.Diagnostics}, err
}

// ValidateEphemeralResourceConfig checks the arguments of an ephemeral resource.
func (s *Server) ValidateEphemeralResourceConfig(
	ctx context.Context, req *tfprotov6.ValidateEphemeralResourceConfigRequest,
) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	diags, err := s.validate(s.ephemeralResources[req.TypeName], req.Config, func() ([]*tfprotov6.Diagnostic, error) {
		resp, err := s.ProviderServer.ValidateEphemeralResourceConfig(ctx, req)
		return resp.Diagnostics, err
	})
	return &tfprotov6.ValidateEphemeralResourceConfigResponse{Diagnostics: diags}, err
}

// OpenEphemeralResource reads an ephemeral resource. Stop cancels the read.
func (s *Server) OpenEphemeralResource(
	ctx context.Context, req *tfprotov6.OpenEphemeralResourceRequest,
) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	r := s.ephemeralResources[req.TypeName]
	if arguments, ok := r.decode(req.Config); ok {
		value, diags := s.read(ctx, r, arguments)
		return &tfprotov6.OpenEphemeralResourceResponse{Result: value, Diagnostics: diags}, nil
	}
	resp, err := s.ValidateEphemeralResourceConfig(ctx,
		&tfprotov6.ValidateEphemeralResourceConfigRequest{TypeName: req.TypeName, Config: req.Config})
	return &tfprotov6.OpenEphemeralResourceResponse{Diagnostics: resp.Diagnostics}, err
}

// validate checks the arguments of a reading.
func (s *Server) validate(
	r reading, sent *tfprotov6.DynamicValue, framework func() ([]*tfprotov6.Diagnostic, error),
) ([]*tfprotov6.Diagnostic, error) {
	arguments, ok := r.decode(sent)
	if ok {
		return r.validate(arguments, s.validated.Load()), nil
	}
	return r.malformed(sent, arguments, framework)
}

func (s *Server) read(ctx context.Context, r reading, arguments cty.Value) (*tfprotov6.DynamicValue, diagnostics) {
	ctx, end := s.stoppable(ctx)
	defer end()
	return r.read(ctx, s.configured.Load(), arguments)
}

// malformed returns diagnostics for arguments that do not conform to the schema: our own if we have any,
// otherwise the framework's. The framework's decoder can panic or allocate too much memory, like the decoder
// in [codec.decode], and must not crash the process either.
func (c codec) malformed(
	sent *tfprotov6.DynamicValue, arguments cty.Value, framework func() ([]*tfprotov6.Diagnostic, error),
) (diags []*tfprotov6.Diagnostic, err error) {
	if wrong := c.misfits(arguments); wrong != nil {
		return problemDiagnostics(wrong), nil
	}
	defer func() {
		if recover() != nil {
			diags, err = refusal(nil), nil
		}
	}()
	if sent != nil && sent.MsgPack != nil && promisesTooMuch(sent.MsgPack) {
		return refusal(nil), nil
	}
	diags, err = framework()
	return refusal(diags), err
}

// refusal returns the framework's diagnostics for arguments that do not conform to the schema. If they
// contain no error, as for a null block, refusal adds one.
func refusal(diags []*tfprotov6.Diagnostic) []*tfprotov6.Diagnostic {
	for _, d := range diags {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			return diags
		}
	}
	return append(diags, problemDiagnostics([]problem{{err: errMalformed}})...)
}

// Stop cancels all running reads, and all later reads until the provider is configured again. An interrupted
// CLI still starts all planned reads, and each of them would wait for its server. Stop itself does not wait.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop(errStopped)
}

// StopProvider calls [Server.Stop]. The CLI calls StopProvider when the user interrupts it.
func (s *Server) StopProvider(ctx context.Context, req *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	s.Stop()
	return s.ProviderServer.StopProvider(ctx, req)
}

// restart allows new reads after Stop. Cancelled reads stay cancelled.
func (s *Server) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil || s.running.Err() != nil {
		s.running, s.stop = context.WithCancelCause(context.Background())
	}
}

// stoppable returns a context that is cancelled when ctx is done or Stop is called.
func (s *Server) stoppable(ctx context.Context) (context.Context, func()) {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() { cancel(context.Cause(running)) }
	if running.Err() != nil { // cancel before returning, so that no work starts
		stop()
	}
	forget := context.AfterFunc(running, stop)
	return ctx, func() { forget(); cancel(nil) }
}
