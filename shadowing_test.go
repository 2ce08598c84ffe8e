package akri_test

import (
	"go/ast"
	"go/token"
	"testing"
)

// TestShadowing finds variables, parameters and results that are named like a type of
// their package.
func TestShadowing(t *testing.T) {
	type unit struct{ dir, name string }
	types := map[unit]map[string]bool{}
	r := repositoryOf(t)
	unitOf := func(file *goFile) unit { return unit{file.dir(), file.syntax.Name.Name} }
	for _, file := range r.code {
		of := unitOf(&file)
		if types[of] == nil {
			types[of] = map[string]bool{}
		}
		for _, name := range typesOf(file.syntax) {
			types[of][name] = true
		}
	}
	for _, file := range r.code {
		if file.generated {
			continue
		}
		known := types[unitOf(&file)]
		for _, declared := range variablesOf(file.syntax) {
			if known[declared.Name] {
				t.Errorf("%s:%d: the variable %s shadows a type of its package: choose another name",
					file.path, file.line(declared.Pos()), declared.Name)
			}
		}
	}
}

// typesOf returns the names of the types that a file declares at package level.
func typesOf(file *ast.File) []string {
	var names []string
	for _, declaration := range file.Decls {
		if general, ok := declaration.(*ast.GenDecl); ok {
			for _, spec := range general.Specs {
				if declared, ok := spec.(*ast.TypeSpec); ok {
					names = append(names, declared.Name.Name)
				}
			}
		}
	}
	return names
}

// variablesOf returns the names that the functions of a file declare.
func variablesOf(file *ast.File) []*ast.Ident {
	var found []*ast.Ident
	add := func(expressions ...ast.Expr) {
		for _, expression := range expressions {
			if name, ok := expression.(*ast.Ident); ok {
				found = append(found, name)
			}
		}
	}
	addFields := func(list *ast.FieldList) {
		for i := 0; list != nil && i < len(list.List); i++ {
			found = append(found, list.List[i].Names...)
		}
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		addFields(function.Recv)
		ast.Inspect(function, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncType:
				addFields(node.Params)
				addFields(node.Results)
			case *ast.AssignStmt:
				if node.Tok == token.DEFINE {
					add(node.Lhs...)
				}
			case *ast.RangeStmt:
				if node.Tok == token.DEFINE {
					add(node.Key, node.Value)
				}
			case *ast.ValueSpec:
				found = append(found, node.Names...)
			}
			return true
		})
	}
	return found
}
