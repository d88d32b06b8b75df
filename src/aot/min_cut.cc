#include "aot/min_cut.h"

#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>

namespace weft::aot {
namespace {

struct EdgeData {
  int64_t capacity = 0, residual = 0;
  size_t reverse = 0;  // index of the edge back
};
using Csr = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, EdgeData>;

}  // namespace

std::vector<bool> FlowNetwork::sink_side(size_t source, size_t sink) const {
  // Each edge and its reverse, grouped by their source, as the compressed graph wants them.
  struct Arc {
    size_t from, to;
    int64_t capacity;
    size_t pair;
  };
  std::vector<Arc> arcs;
  for (const Edge& edge : edges_) {
    arcs.push_back({edge.from, edge.to, edge.capacity, arcs.size() + 1});
    arcs.push_back({edge.to, edge.from, 0, arcs.size() - 1});
  }
  std::vector<size_t> first(vertices_ + 1, 0), at(arcs.size());
  for (const Arc& arc : arcs) ++first[arc.from + 1];
  for (size_t v = 0; v < vertices_; ++v) first[v + 1] += first[v];
  std::vector<size_t> next(first.begin(), first.end() - 1);
  for (size_t i = 0; i < arcs.size(); ++i) at[i] = next[arcs[i].from]++;
  std::vector<std::pair<size_t, size_t>> ends(arcs.size());
  std::vector<EdgeData> data(arcs.size());
  for (size_t i = 0; i < arcs.size(); ++i) {
    ends[at[i]] = {arcs[i].from, arcs[i].to};
    data[at[i]] = {arcs[i].capacity, 0, at[arcs[i].pair]};
  }
  Csr graph(boost::edges_are_sorted, ends.begin(), ends.end(), data.begin(), vertices_);
  std::vector<Csr::edge_descriptor> by_index(arcs.size());
  for (auto [edge, end] = boost::edges(graph); edge != end; ++edge)
    by_index[boost::get(boost::edge_index, graph, *edge)] = *edge;
  std::vector<Csr::edge_descriptor> reverse(arcs.size());
  for (size_t i = 0; i < arcs.size(); ++i) reverse[i] = by_index[data[i].reverse];
  std::vector<boost::default_color_type> color(vertices_);
  std::vector<long> distance(vertices_);
  std::vector<Csr::edge_descriptor> predecessor(vertices_);
  const auto index = boost::get(boost::edge_index, graph);
  const auto vertex = boost::get(boost::vertex_index, graph);
  boost::boykov_kolmogorov_max_flow(
      graph, boost::get(&EdgeData::capacity, graph), boost::get(&EdgeData::residual, graph),
      boost::make_iterator_property_map(reverse.begin(), index),
      boost::make_iterator_property_map(predecessor.begin(), vertex),
      boost::make_iterator_property_map(color.begin(), vertex),
      boost::make_iterator_property_map(distance.begin(), vertex), vertex, source, sink);
  // What still reaches the sink, against the direction of what is left.
  std::vector<bool> reaches(vertices_, false);
  std::vector<size_t> pending{sink};
  reaches[sink] = true;
  while (!pending.empty()) {
    const size_t v = pending.back();
    pending.pop_back();
    for (size_t i = first[v]; i < first[v + 1]; ++i) {
      const auto back = by_index[data[i].reverse];
      const size_t u = boost::source(back, graph);
      if (reaches[u] || graph[back].residual <= 0) continue;
      reaches[u] = true;
      pending.push_back(u);
    }
  }
  return reaches;
}

}  // namespace weft::aot
