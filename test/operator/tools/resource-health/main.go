// Prints what kstatus and a health script of Argo CD make of the objects of a List, a line of JSON each.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type health struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Kstatus string `json:"kstatus"`
	ArgoCD  string `json:"argoCd"`
	Message string `json:"message"`
}

func main() {
	if err := run(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(scriptFile string, input io.Reader, output io.Writer) error {
	script, err := os.ReadFile(scriptFile)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(input)
	if err != nil {
		return err
	}
	list, err := runtimeList(text)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(output)
	for i := range list.Items {
		found, err := healthOf(&list.Items[i], string(script))
		if err != nil {
			return err
		}
		if err := lines.Encode(found); err != nil {
			return err
		}
	}
	return nil
}

func runtimeList(text []byte) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	_, _, err := unstructured.UnstructuredJSONScheme.Decode(text, nil, list)
	return list, err
}

func healthOf(object *unstructured.Unstructured, script string) (*health, error) {
	computed, err := status.Compute(object)
	if err != nil {
		return nil, err
	}
	argoStatus, message, err := runHealthScript(object.Object, script)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return &health{
		Kind:    object.GetKind(),
		Name:    object.GetName(),
		Kstatus: computed.Status.String(),
		ArgoCD:  argoStatus,
		Message: message,
	}, nil
}

// Runs the script as Argo CD does: the global obj, no libraries, and a table as the answer.
func runHealthScript(object map[string]any, script string) (string, string, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}} {
		if err := state.CallByParam(
			lua.P{Fn: state.NewFunction(library.open), NRet: 0, Protect: true},
			lua.LString(library.name),
		); err != nil {
			return "", "", err
		}
	}
	state.SetGlobal("obj", toLua(state, object))
	if err := state.DoString(script); err != nil {
		return "", "", err
	}
	answer, isTable := state.Get(-1).(*lua.LTable)
	if !isTable {
		return "", "", fmt.Errorf("the script returns no table")
	}
	return lua.LVAsString(answer.RawGetString("status")), lua.LVAsString(answer.RawGetString("message")), nil
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch typed := value.(type) {
	case bool:
		return lua.LBool(typed)
	case float64:
		return lua.LNumber(typed)
	case int64:
		return lua.LNumber(typed)
	case string:
		return lua.LString(typed)
	case []any:
		table := state.CreateTable(len(typed), 0)
		for _, element := range typed {
			table.Append(toLua(state, element))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(typed))
		for key, field := range typed {
			table.RawSetString(key, toLua(state, field))
		}
		return table
	}
	return lua.LNil
}
